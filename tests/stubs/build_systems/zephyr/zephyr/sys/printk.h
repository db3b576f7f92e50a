#pragma once

#include <stdio.h>

#define printk(...) printf(__VA_ARGS__)
