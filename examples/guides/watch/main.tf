terraform {
  required_providers {
    clickhousestate = {
      source = "clickhousestate/clickhousestate"
    }
  }
}

variable "pipelines" {
  description = "State ids of the pipelines that have to move."
  type        = set(string)
  default     = ["prod:tap-github-to-target-clickhouse"]
}

data "clickhousestate_entries" "prod" {
  pattern = "prod:*"
}

locals {
  entries   = data.clickhousestate_entries.prod.entries
  yesterday = timeadd(plantimestamp(), "-24h")

  # A pipeline that never stored anything is in no list of old entries: it has to be looked for.
  missing = setsubtract(var.pipelines, keys(local.entries))

  # A run stores its state, even if it has found nothing new.
  stalled = [for id in var.pipelines : id if try(timecmp(local.entries[id].updated_at, local.yesterday) < 0, false)]

  # Streams whose bookmark is old, though the pipeline runs. What is no date is left out.
  behind = flatten([
    for id in var.pipelines : [
      for stream, value in provider::clickhousestate::bookmarks(try(local.entries[id].merged_state, null)) :
      "${id}, ${stream}: ${value}" if try(timecmp(value, local.yesterday) < 0, false)
    ]
  ])
}

check "pipelines_are_there" {
  assert {
    condition     = length(local.missing) == 0
    error_message = "These pipelines have never stored a state: ${join(", ", local.missing)}."
  }
}

check "pipelines_run" {
  assert {
    condition     = length(local.stalled) == 0
    error_message = "These pipelines have not stored a state for 24 hours: ${join(", ", local.stalled)}."
  }
}

check "streams_move" {
  assert {
    condition     = length(local.behind) == 0
    error_message = "These bookmarks are older than 24 hours: ${join(", ", local.behind)}."
  }
}
