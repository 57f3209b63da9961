terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "from" {
  description = "Environment whose bookmarks are taken."
  type        = string
  default     = "staging"
}

variable "to" {
  description = "Environment whose pipelines start there."
  type        = string
  default     = "prod"
}

data "clickhousestate_entries" "from" {
  pattern = "${var.from}:*"
}

locals {
  # What each pipeline would use next, under its name in the other environment.
  promoted = {
    for id, entry in data.clickhousestate_entries.from.entries :
    "${var.to}${trimprefix(id, var.from)}" => entry.merged_state
  }
}

resource "clickhousestate_entry" "promoted" {
  for_each = local.promoted

  state_id        = each.key
  completed_state = each.value
  write_policy    = "seed"   # a pipeline that has run there already keeps its own bookmark
  deletion_policy = "retain" # a pipeline that is gone from the one environment stays in the other

  lifecycle {
    ignore_changes = [completed_state] # promoted once: what is stored later in the one does not reach the other
  }
}

output "promoted" {
  description = "From where each pipeline starts, or has started."
  value       = { for id, entry in clickhousestate_entry.promoted : id => provider::clickhousestate::bookmarks(entry.completed_state) }
}
