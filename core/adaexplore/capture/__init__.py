"""From a source file to a task: find modules and workloads in text, then have a worker export one."""
