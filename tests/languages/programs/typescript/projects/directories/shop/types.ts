export interface Price {
  amount: number;
}
