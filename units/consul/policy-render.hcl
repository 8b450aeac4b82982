# What the token of hadrain-render needs: to read every state. "list" includes
# "read", and is what acl.enable_key_list_policy asks for.
key_prefix "hadrain/state/" {
  policy = "list"
}
