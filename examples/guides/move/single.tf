resource "clickhousestate_entry" "pipeline" {
  for_each = local.bookmarks

  database        = var.database
  table           = "state"
  state_id        = each.key
  completed_state = jsonencode({ singer_state = { bookmarks = each.value } })
}
