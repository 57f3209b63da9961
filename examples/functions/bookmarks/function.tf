data "clickhousestate_entry" "github" {
  state_id = "prod:tap-github-to-target-clickhouse"
}

# Such as { issues = "2026-11-20T08:14:03Z", "repositories[org=acme, repo=web]" = "2026-11-19T23:59:59Z" }
output "github" {
  value = provider::clickhousestate::bookmarks(data.clickhousestate_entry.github.merged_state)
}
