//! `sandbox-run seccomp`: print the system-call filter for use with other container engines.

use crate::args::SeccompArgs;
use crate::errors::Failure;
use crate::stdout;

pub(crate) fn run(args: &SeccompArgs) -> Result<u8, Failure> {
    let profile = if args.oci { sandbox::seccomp_for_oci() } else { sandbox::seccomp_for_docker() };
    stdout::print(&format!("{profile:#}\n"))?;
    Ok(0)
}
