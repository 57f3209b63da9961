terraform {
  required_providers {
    clickhousestate = { source = "clickhousestate/clickhousestate" }
  }
}

provider "clickhousestate" { # host and password: CLICKHOUSE_HOST, CLICKHOUSE_PASSWORD
  username = "terraform"
}

resource "clickhousestate_table" "state" {
  database        = "meltano"
  name            = "state"
  create_database = true
}

resource "clickhousestate_entry" "github" {
  database        = clickhousestate_table.state.database
  table           = clickhousestate_table.state.name
  state_id        = "prod:tap-github-to-target-clickhouse"
  completed_state = jsonencode({ singer_state = { bookmarks = { issues = { since = "2026-01-01T00:00:00Z" } } } })
}
