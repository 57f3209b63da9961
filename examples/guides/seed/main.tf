terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "database" {
  description = "Database of the new environment's state, created if it is not there."
  type        = string
  default     = "meltano_staging"
}

variable "environment" {
  description = "Meltano's name of the new environment."
  type        = string
  default     = "staging"
}

locals {
  # Where each pipeline starts, in the form in which its tap keeps its bookmarks.
  start = {
    "tap-github-to-target-clickhouse" = {
      issues = { replication_key = "updated_at", replication_key_value = "2026-11-01T00:00:00Z" }
    }
    "tap-stripe-to-target-clickhouse" = {
      charges = { created = 1793491200 }
    }
  }
}

resource "clickhousestate_table" "state" {
  database        = var.database
  name            = "state"
  create_database = true
}

resource "clickhousestate_entry" "start" {
  for_each = local.start

  database = clickhousestate_table.state.database
  table    = clickhousestate_table.state.name
  state_id = "${var.environment}:${each.key}"

  write_policy    = "seed"   # only where the pipeline starts: what it stores later is its own
  deletion_policy = "retain" # a destroy leaves what the pipeline has stored
  completed_state = jsonencode({ singer_state = { bookmarks = each.value } })
}
