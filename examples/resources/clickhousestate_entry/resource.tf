resource "clickhousestate_entry" "github" {
  database = clickhousestate_table.state.database
  table    = clickhousestate_table.state.name
  state_id = "prod:tap-github-to-target-clickhouse"

  completed_state = jsonencode({
    singer_state = {
      bookmarks = {
        issues = {
          replication_key       = "updated_at"
          replication_key_value = "2026-01-01T00:00:00Z"
        }
      }
    }
  })
}

# Only where the pipeline starts. What it stores later is no change, and a destroy leaves that alone.
resource "clickhousestate_entry" "stripe" {
  database        = clickhousestate_table.state.database
  table           = clickhousestate_table.state.name
  state_id        = "prod:tap-stripe-to-target-clickhouse"
  write_policy    = "seed"
  deletion_policy = "retain"

  completed_state = jsonencode({
    singer_state = { bookmarks = { charges = { created = 1735689600 } } }
  })
}
