//! A package for tests alone. Their oracles take long to build; programs that are built from the root package do not
//! wait for them.
