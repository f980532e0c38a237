#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_protocol::zygote::{ForkReport, ZygoteConfig};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(config) = ZygoteConfig::decode(bytes) {
        assert_eq!(config.encode(), bytes);
    }
    if let Ok(report) = ForkReport::decode(bytes) {
        assert_eq!(report.encode(), bytes);
    }
});
