# Of Mbed OS's build: what an application calls before and after its target is made.
if(NOT EXISTS ${MBED_PATH} OR NOT MBED_CONFIG_PATH)
  message(FATAL_ERROR "MBED_PATH and MBED_CONFIG_PATH must be set")
endif()

function(mbed_configure_app_target target)
  target_compile_features(${target} PRIVATE cxx_std_17)
endfunction()

function(mbed_set_post_build target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(NOT mbed-os IN_LIST libraries)
    message(FATAL_ERROR "${target} is not linked with mbed-os")
  endif()
endfunction()
