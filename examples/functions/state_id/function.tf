locals {
  # "prod:tap-github-to-target-clickhouse"
  github = provider::clickhousestate::state_id("prod", "tap-github", "target-clickhouse")

  # "prod:tap-postgres-to-target-clickhouse:orders"
  orders = provider::clickhousestate::state_id("prod", "tap-postgres", "target-clickhouse", "orders")
}
