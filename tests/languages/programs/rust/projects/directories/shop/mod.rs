pub mod prices;
