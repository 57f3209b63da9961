data "clickhousestate_entries" "all" {}

locals {
  # The state ids of each extractor. One of another form than Meltano's own counts as "other".
  by_extractor = {
    for id in keys(data.clickhousestate_entries.all.entries) :
    try(provider::clickhousestate::parse_state_id(id).extractor, "other") => id...
  }
}
