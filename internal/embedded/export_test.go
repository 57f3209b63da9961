package embedded

// RunLibrary is for a test that needs a `clickhouse` program.
var RunLibrary = runLibrary
