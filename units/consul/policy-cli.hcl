# What the tokens of those who use the hadrain command need.
key_prefix "hadrain/state/" {
  policy = "write"
}

# Only hadrain init writes the mark of the prefix. Without this rule it would
# fall to "consul kv delete -recurse hadrain/state/", which Consul refuses now.
key "hadrain/state/.hadrain" {
  policy = "read"
}

key_prefix "hadrain/journal/" {
  policy = "write"
}
