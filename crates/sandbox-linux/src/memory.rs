/// Gives memory that this process has freed back to the system. The allocator keeps it otherwise, in a part for
/// each thread, and a server that once had much to do would keep it for ever.
#[cfg(target_env = "gnu")]
pub fn release_free_memory() {
    // SAFETY: it takes a number, locks what it works on, and touches free memory alone.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give memory back by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn release_free_memory() {}
