data "clickhousestate_entry" "github" {
  state_id = "prod:tap-github-to-target-clickhouse"
}

output "github" {
  description = "When the pipeline last stored its state, and the bookmarks that its next run starts from."
  value = {
    updated_at = data.clickhousestate_entry.github.updated_at
    bookmarks  = jsondecode(data.clickhousestate_entry.github.merged_state).singer_state.bookmarks
  }
}
