import type { Price } from "./types";

export const total = (prices: Price[]): number => prices.reduce((sum, { amount }) => sum + amount, 0);
