#include "order_test.h"
void speed() {}
