//! What a command line or a job file asks for, by the rules of fio itself.
