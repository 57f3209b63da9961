import {
  to = clickhousestate_entry.github
  id = "meltano/state/prod:tap-github-to-target-clickhouse"
}
