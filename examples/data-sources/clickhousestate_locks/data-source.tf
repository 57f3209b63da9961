data "clickhousestate_locks" "all" {}

output "locks" {
  description = "Who holds which lock, and for how long: {state_id} by {holder} for {seconds} s."
  value = [
    for lock in data.clickhousestate_locks.all.locks :
    "${lock.state_id} by ${coalesce(lock.holder, "Meltano")} for ${lock.age_seconds} s (lock_id ${lock.lock_id}${lock.stale ? ", stale" : ""})"
  ]
}

# Warn in the plan if something is locked right now: an apply would have to wait.
check "nothing_is_locked" {
  assert {
    condition     = length(data.clickhousestate_locks.all.locks) == 0
    error_message = "A pipeline holds a lock: an apply would wait for it."
  }
}
