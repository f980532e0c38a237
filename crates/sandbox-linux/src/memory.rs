/// Returns memory that this process has freed to the system. The allocator would otherwise keep it,
/// in an arena for each thread, so that a server would hold its peak memory forever.
#[cfg(target_env = "gnu")]
pub fn release_free_memory() {
    // SAFETY: it takes a number, locks what it works on, and touches free memory alone.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return memory by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn release_free_memory() {}
