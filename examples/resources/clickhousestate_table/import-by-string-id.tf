import {
  to = clickhousestate_table.state
  id = "meltano/state"
}
