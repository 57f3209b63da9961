terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "database" {
  description = "Database that holds the state table."
  type        = string
  default     = "meltano"
}

locals {
  bookmarks = {
    "prod:tap-github-to-target-clickhouse" = { issues = { replication_key_value = "2026-11-01T00:00:00Z" } }
    "prod:tap-stripe-to-target-clickhouse" = { charges = { created = 1793491200 } }
  }
}
