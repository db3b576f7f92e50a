# Of Zephyr's build: `app`, to which an application adds its sources, exists once Zephyr is found,
# and prj.conf says for which C++ it is compiled. Here it is the program itself.
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/prj.conf options)
if(NOT "CONFIG_TENSORFLOW_LITE_MICRO=y" IN_LIST options OR NOT "CONFIG_CPP=y" IN_LIST options)
  message(FATAL_ERROR "prj.conf turns TFLM or C++ off")
endif()
project(Zephyr-Kernel LANGUAGES C CXX)
add_executable(app)
if("CONFIG_STD_CPP17=y" IN_LIST options)
  target_compile_features(app PRIVATE cxx_std_17)
endif()
target_include_directories(app PRIVATE ${CMAKE_CURRENT_LIST_DIR} $ENV{TFLM_STAND_IN})
