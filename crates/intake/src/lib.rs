//! Links in: canonical form, scope, seeds.
