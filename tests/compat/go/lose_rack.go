// Loses a rack of a practice cluster and gets it back: lose_rack CONTROL TOKEN RACK BROKER, addresses as HOST:PORT.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	control, token, rack, broker := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	fmt.Println("before", responds(broker))
	fmt.Println("/lose", post(control, token, "/lose", rack))
	fmt.Println("lost", responds(broker))
	fmt.Println("/restore", post(control, token, "/restore", rack))
	fmt.Println("restored", responds(broker))
}

func post(control, token, fault, rack string) int {
	body := strings.NewReader(fmt.Sprintf("{\"racks\": [%q]}", rack))
	request, err := http.NewRequest("POST", "http://"+control+fault, body)
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func responds(broker string) bool {
	connection, err := net.Dial("tcp", broker)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}
