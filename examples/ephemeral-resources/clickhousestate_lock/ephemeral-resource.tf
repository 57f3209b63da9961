locals {
  # Both pipelines are to start again from the same day, and neither may run in between.
  since = {
    "prod:tap-github-to-target-clickhouse" = { issues = { replication_key = "updated_at", replication_key_value = "2026-01-01T00:00:00Z" } }
    "prod:tap-stripe-to-target-clickhouse" = { charges = { replication_key = "created", replication_key_value = 1767225600 } }
  }
}

ephemeral "clickhousestate_lock" "maintenance" {
  state_ids = keys(local.since)
  timeout   = "10m" # a run that is under way may take so long
}

resource "clickhousestate_entry" "pipeline" {
  for_each = local.since

  state_id        = each.key
  completed_state = jsonencode({ singer_state = { bookmarks = each.value } })

  # Inside the window: all of them are written before the lock is released.
  depends_on = [ephemeral.clickhousestate_lock.maintenance]
}
