# terraform apply -invoke=action.clickhousestate_break_lock.github
action "clickhousestate_break_lock" "github" {
  config {
    state_id = "prod:tap-github-to-target-clickhouse"
    # As the error of the waiting apply shows it, so that the lock of somebody else cannot be hit by mistake.
    lock_id = "00000000-0000-8f4e-a1d2-2f5b8f6c9e07"
  }
}
