#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_sansio_fuzz::event_polls(data));
