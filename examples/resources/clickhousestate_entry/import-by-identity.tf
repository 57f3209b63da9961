import {
  to = clickhousestate_entry.github
  identity = {
    database = "meltano" # optional: the provider's
    table    = "state"   # optional: the provider's
    state_id = "prod:tap-github-to-target-clickhouse"
  }
}
