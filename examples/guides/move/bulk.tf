removed {
  from = clickhousestate_entry.pipeline

  lifecycle {
    destroy = false
  }
}

import {
  to = clickhousestate_entries.pipelines
  id = "${var.database}/state/prod:*"
}

resource "clickhousestate_entries" "pipelines" {
  database        = var.database
  table           = "state"
  deletion_policy = "retain" # should the pattern match others, too: they are let go, not deleted

  entries = {
    for id, bookmarks in local.bookmarks :
    id => jsonencode({ completed = { singer_state = { bookmarks = bookmarks } } })
  }
}
