#ifndef PRICES_H
#define PRICES_H
int total(const int *prices, int count);
#endif
