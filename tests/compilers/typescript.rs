//! Attacks on the TypeScript compiler.

use crate::attack::nothing_more;

attacks! {
    a_type_that_doubles_without_end_is_ended:
        "typescript/endless-type.ts", Short => [Timeout, MemoryLimit, CompileError], nothing_more;
    a_file_of_the_host_cannot_be_imported:
        "typescript/import-canary.ts", Long => [CompileError], says!("Cannot find module");
    settings_cannot_be_taken_from_the_host:
        "typescript/settings-outside", Long => [CompileError], says!("not found");
}
