//! fio's languages: command lines, job files, JSON results. Pure.
