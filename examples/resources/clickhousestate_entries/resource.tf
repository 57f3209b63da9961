# All that `meltano state export > state-export.json` wrote.
resource "clickhousestate_entries" "project" {
  database = clickhousestate_table.state.database
  table    = clickhousestate_table.state.name
  export   = file("${path.module}/state-export.json")
}

# Where new pipelines start. What they store later is no change, and a destroy leaves that alone.
resource "clickhousestate_entries" "start" {
  database        = clickhousestate_table.state.database
  table           = clickhousestate_table.state.name
  write_policy    = "seed"
  deletion_policy = "retain"

  entries = {
    for stream, start in { orders = "2026-01-01", customers = "2026-03-01" } :
    "staging:tap-shop-to-target-clickhouse:${stream}" => jsonencode({
      completed = {
        singer_state = { bookmarks = { (stream) = { replication_key_value = start } } }
      }
    })
  }
}
