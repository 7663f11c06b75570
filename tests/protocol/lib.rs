//! A package for tests alone: they need oracles that take long to build, and that programs built from the root package
//! shall not wait for.
