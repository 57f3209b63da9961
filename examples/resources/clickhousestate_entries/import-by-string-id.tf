import {
  to = clickhousestate_entries.project
  id = "meltano/state/prod:*"
}
