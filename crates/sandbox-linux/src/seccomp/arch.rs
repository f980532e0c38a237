//! The supported architectures, and their system-call tables.

use serde::Deserialize;

/// An instruction set together with its system call numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86. Its x32 numbers are treated as unknown calls.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

/// Numbers from here up belong to the x32 ABI on x86_64 kernels: 32-bit pointers, 64-bit registers.
const X32_BIT: u32 = 0x4000_0000;

impl Arch {
    /// Every architecture that profiles support.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The architecture this program was built for.
    #[cfg(target_arch = "x86_64")]
    pub const NATIVE: Self = Self::X86_64;
    /// The architecture this program was built for.
    #[cfg(target_arch = "aarch64")]
    pub const NATIVE: Self = Self::Aarch64;

    /// The value the kernel puts into `seccomp_data.arch` (`AUDIT_ARCH_*` in linux/audit.h): the
    /// ELF machine number, with bits for 64-bit and little-endian.
    pub const fn audit_number(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// The name in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The number of the call with this kernel name, if the architecture has it.
    pub(super) fn number_of(self, name: &str) -> Option<u32> {
        let number = match self {
            Self::X86_64 => name.parse::<syscalls::x86_64::Sysno>().ok()?.id(),
            Self::Aarch64 => name.parse::<syscalls::aarch64::Sysno>().ok()?.id(),
        };
        u32::try_from(number).ok()
    }

    /// The kernel name of a call, if the number is in the table.
    pub(super) fn name_of(self, number: u32) -> Option<&'static str> {
        let index = usize::try_from(number).ok()?;
        match self {
            Self::X86_64 => Some(syscalls::x86_64::Sysno::new(index)?.name()),
            Self::Aarch64 => Some(syscalls::aarch64::Sysno::new(index)?.name()),
        }
    }

    /// The highest number in the table.
    pub(super) const fn last_number(self) -> u32 {
        let last = match self {
            Self::X86_64 => syscalls::x86_64::Sysno::last().id(),
            Self::Aarch64 => syscalls::aarch64::Sysno::last().id(),
        };
        last.unsigned_abs()
    }

    /// The name for a number that is not in the table.
    ///
    /// There are few such names on purpose: a program may try four billion numbers, and the
    /// supervisor keeps a count per name.
    pub(super) const fn name_of_unknown(self, number: u32) -> &'static str {
        match self {
            Self::X86_64 if number >= X32_BIT => "x32",
            Self::X86_64 | Self::Aarch64 => "unknown",
        }
    }
}
