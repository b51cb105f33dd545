collect_ignore_glob = ["__snapshots__*"]  # Python files whose names begin with test_
