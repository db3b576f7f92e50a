// ESP-IDF's task main calls app_main, which may return.
extern "C" void app_main(void);
int main() { app_main(); }
