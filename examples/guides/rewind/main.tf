terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "state_id" {
  description = "Pipeline whose stream is set back."
  type        = string
  default     = "prod:tap-github-to-target-clickhouse"
}

variable "since" {
  description = "From when on the stream issues is read again: RFC 3339. Leave it out for no change."
  type        = string
  default     = null

  validation {
    condition     = var.since == null || can(timeadd(var.since, "0s"))
    error_message = "This is no date as the bookmark holds it, such as 2026-10-01T00:00:00Z."
  }
}

data "clickhousestate_entry" "stored" {
  state_id = var.state_id
}

locals {
  state     = jsondecode(data.clickhousestate_entry.stored.merged_state)
  bookmarks = local.state.singer_state.bookmarks

  # All that the pipeline has stored, but for the one value.
  rewound = merge(local.state, {
    singer_state = merge(local.state.singer_state, {
      bookmarks = merge(local.bookmarks, {
        issues = merge(local.bookmarks.issues, { replication_key_value = var.since })
      })
    })
  })
}

import {
  to = clickhousestate_entry.pipeline
  id = "${data.clickhousestate_entry.stored.database}/${data.clickhousestate_entry.stored.table}/${var.state_id}"
}

resource "clickhousestate_entry" "pipeline" {
  database        = data.clickhousestate_entry.stored.database
  table           = data.clickhousestate_entry.stored.table
  state_id        = var.state_id
  deletion_policy = "retain"

  # Left out, what is stored is the pipeline's, also what a run stores while Terraform works.
  completed_state = var.since == null ? null : jsonencode(local.rewound)

  # What a broken-off run has left would be merged over it.
  partial_state = var.since == null ? null : jsonencode({})
}
