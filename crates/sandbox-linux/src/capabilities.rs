//! Drops capabilities for good.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

use crate::thread::on_a_thread;

/// Ensures that no capability can be regained, neither by exec nor by changing IDs.
///
/// This process keeps what it holds, including the capability that this requires; its children
/// cannot gain anything by exec.
pub(crate) fn lock_out() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // This kernel has no further capabilities.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    set_capabilities_secure_bits(LOCKED)
}

/// Keeps the capabilities of this process when its effective user changes.
pub(crate) fn keep_through_user_changes() -> Result<(), Errno> {
    set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)
}

/// Ensures that only these capabilities can be had after the next exec.
pub(crate) fn bound_to(kept: CapabilitySet) -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // This kernel has no further capabilities.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Root is not special, changing IDs changes no capability, none is kept or raised; and all of this
/// is locked.
const LOCKED: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT
    .union(CapabilitiesSecureBits::NO_ROOT_LOCKED)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED)
    .union(CapabilitiesSecureBits::KEEP_CAPS_LOCKED)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// Empties every set of this process.
pub(crate) fn drop_all() -> Result<(), Errno> {
    keep_only(CapabilitySet::empty())
}

/// Keeps only these; init needs one to kill processes of another user.
pub(crate) fn keep_only(kept: CapabilitySet) -> Result<(), Errno> {
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

/// The opposite, for runs without this protection: passes all capabilities to the program through
/// exec.
pub(crate) fn hand_on_all() -> Result<(), Errno> {
    let all = rustix::thread::capabilities(None)?.permitted;
    set_capabilities(None, CapabilitySets { effective: all, permitted: all, inheritable: all })?;
    for capability in all {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// Whether this process may do that, found by trying on a temporary thread.
pub fn can_be_kept_through_user_changes() -> bool {
    let tried = on_a_thread("sandbox-probe", || Ok(keep_through_user_changes()?));
    tried.is_ok()
}
