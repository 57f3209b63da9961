# A state table, and the bookmarks that `meltano state export` wrote, one entry for each pipeline.

terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "database" {
  description = "Database that holds the state table; created if it is not there."
  type        = string
  default     = "meltano"
}

variable "deletion_protection" {
  description = "Whether a plan that would drop the state table is refused."
  type        = bool
  default     = true
}

# The connection comes from the environment: CLICKHOUSE_HOST, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD...
provider "clickhousestate" {}

resource "clickhousestate_table" "state" {
  database            = var.database
  name                = "state"
  create_database     = true
  deletion_protection = var.deletion_protection
}

resource "clickhousestate_entry" "pipeline" {
  for_each = jsondecode(file("${path.module}/state-export.json"))

  database = clickhousestate_table.state.database
  table    = clickhousestate_table.state.name
  state_id = each.key

  # A state that the export does not have stays unset: it is the pipeline's own.
  completed_state = each.value.completed == null ? null : jsonencode(each.value.completed)
  partial_state   = each.value.partial == null ? null : jsonencode(each.value.partial)
}
