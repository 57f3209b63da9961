locals {
  # What `meltano state export` wrote.
  export = jsondecode(file("${path.module}/state-export.json"))

  # What the next run of each pipeline will use, as JSON.
  merged = {
    for id, state in local.export :
    id => provider::clickhousestate::merge_state(
      state.completed == null ? null : jsonencode(state.completed),
      state.partial == null ? null : jsonencode(state.partial),
    )
  }
}
