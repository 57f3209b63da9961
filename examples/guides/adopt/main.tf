terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "database" {
  description = "Database that holds Meltano's state table."
  type        = string
  default     = "meltano"
}

variable "adopt" {
  description = "State ids to adopt. Look at the output not_adopted first."
  type        = set(string)
  default     = []
}

data "clickhousestate_entries" "stored" {
  database = var.database
}

# What Meltano has written and Terraform does not manage.
output "not_adopted" {
  value = setsubtract(keys(data.clickhousestate_entries.stored.entries), var.adopt)
}

import {
  to = clickhousestate_table.state
  id = "${var.database}/state"
}

resource "clickhousestate_table" "state" {
  database = var.database
  name     = "state"
}

import {
  for_each = var.adopt
  to       = clickhousestate_entry.pipeline[each.value]
  id       = "${var.database}/state/${each.value}"
}

resource "clickhousestate_entry" "pipeline" {
  for_each = var.adopt

  database = clickhousestate_table.state.database
  table    = clickhousestate_table.state.name
  state_id = each.value

  # No completed_state and no partial_state: they stay the pipeline's own.
  deletion_policy = "retain" # taking an id out of the list only forgets it
}
