removed {
  from = clickhousestate_entries.pipelines

  lifecycle {
    destroy = false
  }
}

import {
  for_each = local.bookmarks
  to       = clickhousestate_entry.pipeline[each.key]
  id       = "${var.database}/state/${each.key}"
}

resource "clickhousestate_entry" "pipeline" {
  for_each = local.bookmarks

  database        = var.database
  table           = "state"
  state_id        = each.key
  completed_state = jsonencode({ singer_state = { bookmarks = each.value } })
}
