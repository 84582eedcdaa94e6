//! The layers under a path, a disk or a virtual machine, and what each of them costs.

pub mod measure;
