//! The store from outside: what is written can be read, checked, cut anywhere and taken over again.

mod archive;
mod check;
mod fixture;
mod recover;
mod round_trip;
mod sample;
