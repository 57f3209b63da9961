# Pipelines that have not stored their state for 24 hours.
data "clickhousestate_entries" "stalled" {
  pattern        = "prod:*"
  updated_before = timeadd(plantimestamp(), "-24h")
}

# Every plan and apply warns of them.
check "pipelines_move" {
  assert {
    condition = length(data.clickhousestate_entries.stalled.entries) == 0
    error_message = join("\n", concat(["These pipelines have not moved for 24 hours:"], [
      for id, entry in data.clickhousestate_entries.stalled.entries : "  ${id}, since ${entry.updated_at}"
    ]))
  }
}
